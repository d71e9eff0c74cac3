/**
 * The time in a run, from its first event on.
 *
 *     live       the real time
 *     replayed   what the recording says of each call; between calls the clock stands still
 *     resumed    what the recording says, and from the last recorded end on the real time
 *
 * From effective-agents 0.1.0: patterns/trace-file/clock.ts
 */
import type { EndEvent } from "../step.ts";

/** From when to when, in milliseconds since the run's start. */
export interface Span {
  readonly begin: number;
  readonly ms: number;
}

/** The times of a call when it was recorded. */
interface Recorded extends Span {
  /** They are estimated. */
  readonly estimated: boolean;
}

/** A moment: the latest recorded end by then, and the real time since. */
interface Moment {
  readonly replayed: number;
  readonly since: number;
}

/** What the events of a step or a call say of its time. */
export interface Timing {
  readonly started: Moment;
  readonly ended?: Moment;
  /** How long it really took. */
  readonly ms?: number;
  readonly recorded?: Recorded | undefined;
}

/** The run's clock. */
export interface Clock {
  readonly start: (at: number) => Timing;
  readonly end: (timing: Timing, event: EndEvent) => Timing;
  readonly spanOfStep: (timing: Timing) => Span;
  readonly spanOfCall: (timing: Timing) => Span;
  /** Whether all calls so far were replayed. */
  readonly isReplay: () => boolean;
  /** The time at `at`, which is in milliseconds since the Unix epoch. */
  readonly timeAt: (at: number) => number;
  /** When the first event came, likewise; before that, when the clock was made. */
  readonly startedAt: () => number;
}

/** Makes a clock that starts with the first event. */
export function createClock(): Clock {
  let startedAt = Date.now();
  let isStarted = false;
  let replayed = 0;
  let replayedAt = startedAt;
  let latest: Moment = { replayed: 0, since: 0 };
  let hasReplayed = false;
  let hasCalled = false;

  const moment = (at: number): Moment => {
    if (!isStarted) {
      isStarted = true;
      startedAt = at;
      replayedAt = at;
    }
    latest = { replayed, since: at - replayedAt };
    return latest;
  };
  const isReplay = () => hasReplayed && !hasCalled;
  const time = (moment: Moment) => moment.replayed + (isReplay() ? 0 : moment.since);

  return {
    isReplay,
    startedAt: () => startedAt,
    timeAt: (at) => replayed + (at - replayedAt),
    start: (at) => ({ started: moment(at) }),
    end: ({ started }, event) => {
      const notes = notesOf(event);
      // Of a call that is cancelled now, and wasn't then, the recording says nothing.
      const recorded = event.outcome === "cancelled" && !notes.sent ? undefined : notes.recorded;
      if (recorded) {
        hasReplayed = true;
        replayed = Math.max(replayed, recorded.begin + recorded.ms);
        replayedAt = event.at;
      } else if (notes.sent) hasCalled = true;
      return { started, ended: moment(event.at), ms: event.ms, recorded };
    },
    spanOfStep: ({ started, ended = latest, ms }) => {
      const begin = time(started);
      // To the fraction of a millisecond, where there is no other clock.
      return { begin, ms: hasReplayed || ms === undefined ? time(ended) - begin : ms };
    },
    spanOfCall: ({ started, ended, ms, recorded }) => {
      if (recorded) return { begin: recorded.begin, ms: recorded.ms };
      if (isReplay()) return { begin: time(started), ms: time(ended ?? latest) - time(started) };
      // A live call waits until what is recorded has been replayed.
      const begin = Math.max(time(started), replayed);
      return { begin, ms: ms ?? Math.max(0, time(latest) - begin) };
    },
  };
}

/** What is said of a call by those who send it, or replay it. */
export interface Notes {
  /** It went out: noted by the door. */
  readonly sent?: boolean;
  /** When it was made: noted by recording.ts of a call that it replays. */
  readonly recorded?: Recorded;
}

/** The notes of a call that has ended. */
export function notesOf({ notes = {} }: EndEvent): Notes {
  return notes;
}
