/**
 * What coding agents read: `llms.txt`, and the table of modules in `AGENTS.md`. Both say of each pattern what
 * its own doc comment says, so that they can't go stale.
 *
 *     npm run registry    writes them, with the registry
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readModuleDoc } from "../../runners/gallery/module-doc.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A module that can be copied, by the name of its item in the registry. */
export interface Guided {
  readonly name: string;
  /** Such as `patterns/route.ts`. */
  readonly module: string;
}

/** What is written, by path. */
export async function makeGuides(guided: readonly Guided[]): Promise<ReadonlyMap<string, string>> {
  const read = (path: string) => readFile(join(ROOT, path), "utf8");
  const modules = await Promise.all(
    guided.map(async ({ name, module }) => ({
      name,
      module,
      ...readModuleDoc(await read(module)),
    })),
  );
  const [, about = ""] = /^# .+\n\n.+\n\n(.+)\n/.exec(await read("README.md")) ?? [];
  const llms = modules.map(({ name, module, sentence, useWhen, costs }) => {
    const when = useWhen && ` Use when ${useWhen}`;
    const cost = costs && ` Costs ${costs}`;
    return `- [${name}](${module}): ${sentence}${when}${cost}`;
  });
  const rows = modules.map(({ name, module, sentence }) => {
    return `| [${name}](${module}) | ${sentence.replaceAll("|", "\\|")} |`;
  });
  const table = `| item | module |\n|---|---|\n${rows.join("\n")}`;
  const agents = await read("AGENTS.md");
  return new Map([
    ["llms.txt", `${LLMS(about)}\n\n## Modules\n\n${llms.join("\n")}\n`],
    ["AGENTS.md", agents.replace(BETWEEN, (_, start, end) => `${start}\n\n${table}\n\n${end}`)],
  ]);
}

const BETWEEN = /(<!-- modules -->)[\s\S]*(<!-- end -->)/;

const LLMS = (about: string) => `# effective-agents

> ${about}

To put a module into an app with its test and all files that it needs: \`npx shadcn@latest add <owner>/<repo>/<item> --yes\`, where an item has the name in brackets below. It prints the command that runs the test, which needs no key, and what tsconfig.json may need. To copy by hand, take what its header names after "Copy along". Every pattern is one function, \`pattern(input, options)\`; a result's \`status\` (or \`route\`) narrows the rest. Try one call first, a workflow where that falls short, and an agent only where the path can't be known beforehand.

- [README](README.md): what it all does, with examples that run
- [AGENTS.md](AGENTS.md): how to use a module in an app, from a clone too, and how to work on this repository`;
