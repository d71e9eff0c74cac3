/**
 * The clock of a run: where it stands, whether it goes, how fast. Who shows the run listens.
 *
 * Of a run under way the clock follows the newest moment until it's paused or sent to an earlier one,
 * which it then holds. To play it, or to send it to the newest moment, is to follow again.
 */
import { momentsOf } from "./moment.ts";
import type { Run } from "./run.ts";

export interface Player {
  readonly run: () => Run;
  /** In milliseconds since the run's start. */
  readonly time: () => number;
  /** Whether it goes: it plays, or follows a run under way. */
  readonly isGoing: () => boolean;
  readonly play: () => void;
  readonly pause: () => void;
  readonly toggle: () => void;
  readonly seek: (time: number) => void;
  /** Goes to the next moment at which something begins or ends, or to the one before. */
  readonly step: (direction: 1 | -1) => void;
  /** How many milliseconds of the run pass in one. */
  readonly setRate: (rate: number) => void;
  /** Shows another run from its end, or more of the one under way, of which an earlier moment is held. */
  readonly load: (run: Run) => void;
  /** Has the run under way last until `now`. */
  readonly grow: (now: number) => void;
}

/** What a change is about: the time alone, the state of play, how long the run is, or the run itself. */
export type Change = "time" | "play" | "length" | "run";

/** Makes a player, which stands at the run's end, so that all of it is seen at first. */
export function createPlayer(first: Run, onChange: (change: Change) => void): Player {
  let run = first;
  let moments = momentsOf(run);
  let time = run.end;
  let rate = 1;
  let frame = 0;
  let last = 0;
  let isFollowing = run.goesOn;

  const tick = (now: number) => {
    time = Math.min(run.end, time + (now - last) * rate);
    last = now;
    frame = time < run.end ? requestAnimationFrame(tick) : 0;
    onChange(frame === 0 ? "play" : "time");
  };
  const play = () => {
    if (frame !== 0) return;
    if (run.goesOn) return seek(run.end);
    if (time >= run.end) time = 0;
    last = performance.now();
    frame = requestAnimationFrame(tick);
    onChange("play");
  };
  const pause = () => {
    if (!isGoing()) return;
    cancelAnimationFrame(frame);
    [frame, isFollowing] = [0, false];
    onChange("play");
  };
  const seek = (to: number) => {
    time = Math.max(0, Math.min(run.end, to));
    isFollowing = run.goesOn && time >= run.end;
    onChange("time");
  };
  const isGoing = () => frame !== 0 || isFollowing;
  return {
    run: () => run,
    time: () => time,
    isGoing,
    play,
    pause,
    toggle: () => (isGoing() ? pause() : play()),
    seek,
    step: (direction) => {
      pause();
      const next =
        direction > 0
          ? (moments.find((moment) => moment > time + 1e-6) ?? run.end)
          : (moments.findLast((moment) => moment < time - 1e-6) ?? 0);
      seek(next);
    },
    setRate: (to) => {
      rate = to;
    },
    load: (next) => {
      const isSame = run.goesOn && next.trace.startedAt === run.trace.startedAt;
      const isHeld = isSame && !isFollowing;
      cancelAnimationFrame(frame);
      [run, moments, frame] = [next, momentsOf(next), 0];
      time = isHeld ? Math.min(time, run.end) : run.end;
      isFollowing = run.goesOn && !isHeld;
      onChange("run");
    },
    grow: (now) => {
      if (!run.goesOn) return;
      run = { ...run, end: Math.max(run.end, now) };
      if (isFollowing) time = run.end;
      onChange("length");
    },
  };
}
