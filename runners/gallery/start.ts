/**
 * The entry point of the gallery's commands.
 */
import { main } from "./cli.ts";

process.exitCode = await main(process.argv.slice(2), process.env);
