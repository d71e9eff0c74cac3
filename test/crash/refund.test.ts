/** Refunds that are killed at any point: never a torn book, never two for one approval. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { newBook, refundsIn } from "../shared/order-book.ts";
import { CALLS, makeRefunds } from "../shared/refunding.ts";

test("killed at fifty points, it leaves a whole book, and pays nothing twice when it starts again", {
  timeout: 120_000,
}, async () => {
  const start = async (mortal: number) => {
    const { file } = await newBook();
    const before = await readFile(file, "utf8");
    const args = [inject("refunding"), file, String(mortal)];
    const ended = await promisify(execFile)(process.execPath, args).catch(
      (error: unknown) => error,
    );
    return { file, before, ended };
  };
  const whole = await start(0);
  const { stdout } = whole.ended as { stdout: string }; // what execFile gives
  expect(await refundsIn(whole.file)).toEqual(["toolu_1", "toolu_2"]);
  const points = Number(stdout);
  expect(points).toBeGreaterThanOrEqual(50);

  const left = new Map<number, number>();
  const killAt = async (point: number) => {
    const { file, before, ended } = await start(point);
    expect(ended).toMatchObject({ signal: "SIGKILL" });
    const found = await refundsIn(file);
    expect(found).toEqual(["toolu_1", "toolu_2"].slice(0, found.length));
    if (found.length === 0) expect(await readFile(file, "utf8")).toBe(before);
    left.set(found.length, (left.get(found.length) ?? 0) + 1);

    const { asked, results } = await makeRefunds(file);
    expect(asked).toEqual(CALLS.map(({ callId }) => callId).filter((id) => !found.includes(id)));
    expect(results).toEqual([
      expect.stringContaining("Refunded 49.90 EUR for order 5107."),
      expect.stringContaining("Refunded 14.50 EUR for order 5121."),
    ]);
    expect(await refundsIn(file)).toEqual(["toolu_1", "toolu_2"]);
  };
  // A few at once, from first to last.
  const queue = Array.from(
    { length: 50 },
    (_, index) => 1 + Math.floor((index * points) / 50),
  ).values();
  const lane = async () => {
    for (const point of queue) await killAt(point);
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  // Deaths before the first refund, between the two and after both.
  expect([...left.keys()].toSorted()).toEqual([0, 1, 2]);
});
