/**
 * The entry point of all commands.
 *
 * package.json has the SDK loaded before tsx: its 300 files need no compiler, and going through one they
 * take as long as all the rest of a start.
 */

/** Loaded when they are asked for, so that none waits for what another needs. */
const COMMANDS = {
  agent: () => import("./agent-cli.ts"),
  eval: () => import("./eval-cli.ts"),
};

const [, , command = "", ...argv] = process.argv;

// A reader that has seen enough (`npm start | head`) is no failure, but a recording isn't whole then.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  if (command !== "record") process.exit(0);
  process.stderr.write("Broke off, since nobody reads the output: run it again to go on\n");
  process.exit(1);
});

if (command === "agent" || command === "eval") {
  const { main } = await COMMANDS[command]();
  process.exitCode = await main(argv, process.env);
} else {
  const { main } = await import("./cli.ts");
  process.exitCode = await main([command, ...argv], process.env);
}
