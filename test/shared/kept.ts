/**
 * A stream that keeps what is written to it, and looks like a terminal if it has a width.
 *
 * From effective-agents 0.1.0: test/shared/kept.ts
 */
import { Writable } from "node:stream";

export class Kept extends Writable {
  text = "";
  readonly isTTY: boolean;
  readonly columns: number;
  readonly rows = 24;

  constructor(columns = 0) {
    super({ decodeStrings: false });
    this.isTTY = columns > 0;
    this.columns = columns;
  }

  override _write(chunk: string, _: unknown, done: () => void): void {
    this.text += chunk;
    done();
  }
}
