/** The entry point of `npm start`, `npm run live` and `npm run record`. */
import { main } from "./cli.ts";

// A reader that has seen enough (`npm start | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});
process.exitCode = await main(process.argv.slice(2), process.env);
