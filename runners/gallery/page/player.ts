/**
 * The clock of a run: where it stands, whether it goes, how fast. Who shows the run listens.
 */
import { momentsOf } from "./moment.ts";
import type { Run } from "./run.ts";

export interface Player {
  readonly run: () => Run;
  /** In milliseconds since the run's start. */
  readonly time: () => number;
  readonly isPlaying: () => boolean;
  readonly play: () => void;
  readonly pause: () => void;
  readonly toggle: () => void;
  readonly seek: (time: number) => void;
  /** Goes to the next moment at which something begins or ends, or to the one before. */
  readonly step: (direction: 1 | -1) => void;
  /** How many milliseconds of the run pass in one. */
  readonly setRate: (rate: number) => void;
  /** Shows another run, or more of the same. */
  readonly load: (run: Run, time: number) => void;
}

/** What a change is about: the time alone, the state of play, or the run itself. */
export type Change = "time" | "play" | "run";

/** Makes a player, which stands at the run's end, so that all of it is seen at first. */
export function createPlayer(first: Run, onChange: (change: Change) => void): Player {
  let run = first;
  let moments = momentsOf(run);
  let time = run.end;
  let rate = 1;
  let frame = 0;
  let last = 0;

  const tick = (now: number) => {
    time = Math.min(run.end, time + (now - last) * rate);
    last = now;
    frame = time < run.end ? requestAnimationFrame(tick) : 0;
    onChange(frame === 0 ? "play" : "time");
  };
  const play = () => {
    if (frame !== 0) return;
    if (time >= run.end) time = 0;
    last = performance.now();
    frame = requestAnimationFrame(tick);
    onChange("play");
  };
  const pause = () => {
    if (frame === 0) return;
    cancelAnimationFrame(frame);
    frame = 0;
    onChange("play");
  };
  const seek = (to: number) => {
    time = Math.max(0, Math.min(run.end, to));
    onChange("time");
  };
  return {
    run: () => run,
    time: () => time,
    isPlaying: () => frame !== 0,
    play,
    pause,
    toggle: () => (frame === 0 ? play() : pause()),
    seek,
    step: (direction) => {
      pause();
      const next =
        direction > 0
          ? moments.find((moment) => moment > time + 1e-6)
          : moments.findLast((moment) => moment < time - 1e-6);
      if (next !== undefined) seek(next);
    },
    setRate: (to) => {
      rate = to;
    },
    load: (next, at) => {
      run = next;
      moments = momentsOf(run);
      time = at;
      onChange("run");
    },
  };
}
