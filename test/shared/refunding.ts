/**
 * A process that makes two refunds which were approved, and kills itself at a point of its work: before and
 * after each look at the disk, and in the middle of each write, which goes piece by piece here.
 *
 *     node refunding.mjs <order book> <point>    0 lives to the end, and prints how many points there are
 */
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { createApproval } from "../../patterns/approve.ts";
import { openOrderBook } from "../../runners/refund/order-book.ts";
import { createRefundTools } from "../../runners/refund/tools.ts";

/** The calls of one turn, as a run that starts again has them too. */
export const CALLS = [
  { callId: "toolu_1", input: { order: "5107", cents: 4_990, reason: "It leaks" } },
  { callId: "toolu_2", input: { order: "5121", cents: 1_450, reason: "It's sour" } },
];

/** Makes the refunds, unless they are made; gives how each call ended, and what was asked for. */
export async function makeRefunds(file: string) {
  const asked: string[] = [];
  const approve = createApproval({
    ask: async ({ callId }) => {
      asked.push(callId);
      return "yes";
    },
  });
  const [, refund] = createRefundTools(openOrderBook(file), approve);
  const results = await Promise.all(
    CALLS.map(({ callId, input }) => refund?.run(input, { callId, signal: undefined })),
  );
  return { asked, results };
}

/** So many pieces a write has. */
const PIECES = 8;

let points = 0;

function dieAt(mortal: number): void {
  const point = () => {
    points += 1;
    if (points === mortal) process.kill(process.pid, "SIGKILL");
  };
  const around =
    <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) =>
    async (...args: Args) => {
      point();
      const result = await work(...args);
      point();
      return result;
    };
  const { open, rename, readFile } = fs;
  const opened: typeof open = async (...args) => {
    const handle = await open(...args);
    handle.sync = around(handle.sync.bind(handle));
    handle.close = around(handle.close.bind(handle));
    handle.writeFile = async (data) => {
      const text = String(data);
      const size = Math.ceil(text.length / PIECES);
      for (let at = 0; at < text.length; at += size) {
        await handle.write(text.slice(at, at + size));
        point();
      }
    };
    return handle;
  };
  const read = (...args: Parameters<typeof readFile>) => readFile(...args);
  Object.assign(fs, { open: around(opened), rename: around(rename), readFile: around(read) });
  syncBuiltinESMExports();
}

const [, script = "", file = "", mortal] = process.argv;
if (script.endsWith("refunding.mjs")) {
  dieAt(Number(mortal));
  await makeRefunds(file);
  process.stdout.write(String(points));
}
