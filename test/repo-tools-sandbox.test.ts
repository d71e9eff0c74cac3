/**
 * What must never come out of the root, nor out of a secret file, by any of the three tools.
 *
 * From effective-agents 0.1.0: test/repo-tools-sandbox.test.ts
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { link, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { inspect } from "node:util";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import {
  createSandbox,
  type OpenFile,
  type Sandbox,
  withFile,
} from "../patterns/repo-tools/sandbox.ts";
import { isSecret } from "../patterns/repo-tools/secrets.ts";
import { createRepoTools } from "../patterns/repo-tools.ts";
import { ToolError } from "../patterns/tool.ts";

/** Stands in every file that must not be shown. */
const HIDDEN = "hidden-content-7f3a";

type Name = "list_files" | "read_file" | "search";

/** The tools by their names, for a call that gives a text, and for one that a `ToolError` refuses. */
function toolsFor(root: string, deny: readonly string[] = []) {
  const tools = createRepoTools(root, { deny });
  const call = async (name: Name, input: object) => {
    const tool = tools.find((tool) => tool.name === name);
    return tool?.run(input, { callId: "c1", signal: undefined }) ?? "no such tool";
  };
  const refused = async (name: Name, input: object) => {
    const error = await call(name, input).catch((error: unknown) => error);
    if (error instanceof ToolError) return error.message;
    throw new Error("It was not refused", { cause: error });
  };
  return { call, refused };
}

/** A folder with these files in `repo`, and a hidden file in `repo-evil` beside it. */
async function makeRepo(files: Readonly<Record<string, string>> = {}) {
  const base = await mkdtemp(join(tmpdir(), "repo-tools-sandbox-"));
  onTestFinished(() => rm(base, { recursive: true }));
  const all = { "repo/a.txt": "inside", "repo-evil/s.txt": HIDDEN, "outside.txt": HIDDEN };
  for (const [path, text] of [...Object.entries(all), ...Object.entries(files)]) {
    await mkdir(join(base, dirname(path)), { recursive: true });
    await writeFile(join(base, path), text);
  }
  const root = join(base, "repo");
  return { base, root, ...toolsFor(root) };
}

const SECRETS = [
  ".cargo/credentials",
  ".gem/credentials",
  "server.key.bak",
  "server.pem~",
  "key.pem.old",
  ".npmrc.bak",
  ".npmrc~",
  ".git-credentials.bak",
  "#.env#",
  "prod.env.local",
  "prod.tfvars",
  "AuthKey.p8",
  ".my.cnf",
  ".s3cfg",
  "kubeconfig",
  ".env",
  ".env.local",
  ".env.production",
  ".ENV",
  ".envrc",
  "prod.env",
  "id_rsa",
  "ID_RSA.bak",
  "id_ed25519.pub",
  ".git/config",
  ".Git/HEAD",
  "sub/.git/config",
  "worktree/.git",
  ".svn/entries",
  ".hg/hgrc",
  ".npmrc",
  ".pypirc",
  ".netrc",
  ".git-credentials",
  "key.pem",
  "tls/Server.KEY",
  "store.p12",
  "store.pfx",
  ".ssh/known_hosts",
  ".aws/config",
  ".gnupg/x",
  ".docker/config.json",
  "credentials.json",
  "gcp-credentials.json",
  "secrets.yaml",
  "client_secret_1.json",
  "service-account.json",
  "terraform.tfstate",
  ".env.",
  ".env ",
  "ｉd_rsa",
];
const HARMLESS = [
  ".env.example",
  ".env.sample",
  ".env.template",
  ".env.production.example",
  ".gitignore",
  ".gitattributes",
  ".github/workflows/ci.yml",
  "environment.ts",
  "secrets.ts",
  "src/credentials/index.ts",
  "keys.ts",
  "secretary.json",
  ".yarnrc.yml",
  "git/config",
];

test.for(SECRETS)("no tool shows %j", async (path) => {
  const { call, refused } = await makeRepo({ [`repo/${path}`]: HIDDEN });
  expect(await refused("read_file", { path })).toMatch(/may hold secrets, so no tool shows it/);
  const listed = await call("list_files", { glob: "**" });
  expect(listed.split("\n").filter((line) => !line.endsWith("/"))).toEqual(["a.txt 6 bytes"]);
  expect(await call("search", { pattern: HIDDEN })).toMatch(/^No match .* in 1 files/);
  expect(await call("search", { pattern: HIDDEN, glob: path })).toMatch(/^No file fits/);
});

test.for(HARMLESS)("every tool shows %j", async (path) => {
  const { call } = await makeRepo({ [`repo/${path}`]: "harmless" });
  expect(await call("read_file", { path })).toBe(`${path} lines 1-1 of 1\n1| harmless`);
  expect(await call("list_files", { glob: "**" })).toContain(`${path} 8 bytes`);
  expect(await call("search", { pattern: "harmless" })).toBe(`${path}:1: harmless`);
});

test("refuses a secret whether it's there or not, and never proposes one", async () => {
  const { refused } = await makeRepo({ "repo/.env": HIDDEN });
  expect(await refused("read_file", { path: "nowhere/.env" })).toMatch(/may hold secrets/);
  expect(await refused("list_files", { path: ".git" })).toMatch(/may hold secrets/);
  expect(await refused("read_file", { path: ".en" })).toBe(
    "'.en' doesn't exist. In '.' there is 'a.txt'.",
  );
});

test.for([
  [["customers/"], "customers/eu/a.csv"],
  [["customers/**"], "customers/a.csv"],
  [["*.csv"], "src/customers/a.csv"],
  [["./src/customers"], "src/customers/a.csv"],
  [["*.xls", "*.{csv,tsv}"], "a.tsv"],
  [["customers//"], "customers/a.csv"],
  [["//customers"], "customers/a.csv"],
  [["customers/."], "customers/a.csv"],
  [["./customers/./"], "customers/a.csv"],
  [[" customers/ \n"], "customers/a.csv"],
  [["*.csv"], "Data.CSV"],
  [["Customers"], "customers/a.csv"],
  [["caf\u00e9/"], "cafe\u0301/a.csv"],
  [["[a-c]*.CSV"], "b.csv"],
] as const)("no tool shows what is denied: %j", async ([deny, path]) => {
  const { root } = await makeRepo({ [`repo/${path}`]: HIDDEN });
  await symlink(path, join(root, "link"));
  const { call, refused } = toolsFor(root, deny);
  for (const asked of [path, "link"]) {
    expect(await refused("read_file", { path: asked })).toMatch(/is to stay hidden, so no tool/);
  }
  expect(await call("list_files", { glob: "**" })).not.toContain(path);
  expect(await call("search", { pattern: HIDDEN })).toMatch(/^No match .* in 1 files/);
  expect(await call("read_file", { path: "a.txt" })).toContain("1| inside");
});

test.for(["", " ", ".", "./", "/", "../x", "a/../b", "!*.ts", "customers\\"])(
  "refuses to deny %j, which would deny nothing",
  async (glob) => {
    const { root } = await makeRepo();
    expect(() => createRepoTools(root, { deny: [glob] })).toThrow(TypeError);
    expect(() => createRepoTools(root, { deny: [glob] })).toThrow(/^deny: /);
  },
);

test("refuses to deny by an absolute path, or by what is no list of globs", async () => {
  const { root } = await makeRepo({ "customers/a.csv": HIDDEN });
  for (const glob of [root, `${root}/customers/`]) {
    expect(() => createRepoTools(root, { deny: [glob] })).toThrow(/must be relative to the root$/);
  }
  for (const deny of ["customers/", [1], [BigInt(1)], [undefined], {}]) {
    // What plain JavaScript can hand over.
    const make = () => createRepoTools(root, { deny: deny as unknown as string[] });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(`deny must be a list of globs, got ${inspect(deny)}`);
  }
});

test("takes a name for secret in any case, with what Windows drops, or letters that look alike", () => {
  for (const name of [".ENV", ".Env.Local", ".env...", ".git. .", "id_rſa", "．env"]) {
    expect([name, isSecret(["src", name, "x"])]).toEqual([name, true]);
  }
});

// S01
test("a folder beside the root whose name begins like it is outside", async () => {
  const { base, refused } = await makeRepo();
  expect(await refused("read_file", { path: "../repo-evil/s.txt" })).toBe(
    "'../repo-evil/s.txt' points outside the repo root. Use a path relative to it, such as 'src/app.ts'.",
  );
  const path = join(base, "repo-evil/s.txt");
  expect(await refused("read_file", { path })).toBe(
    `'${path}' is an absolute path, which no tool takes. Use a path relative to the repo root, such as 'src/app.ts'.`,
  );
  expect(await refused("list_files", { path: "../repo-evil" })).toMatch(/points outside/);
  expect(await refused("search", { pattern: "x", glob: "../**" })).toMatch(/can't go up/);
});

test("refuses an absolute path inside the root, and says the relative one", async () => {
  const { root, refused } = await makeRepo();
  expect(await refused("read_file", { path: join(root, "a.txt") })).toMatch(
    /Use 'a\.txt', relative to the repo root\.$/,
  );
});

test("refuses a path that leaves the root on its way, and takes one that doesn't", async () => {
  const { call, refused } = await makeRepo();
  expect(await refused("read_file", { path: "../repo/a.txt" })).toMatch(/points outside/);
  expect(await call("read_file", { path: "./x/..//a.txt" })).toBe(
    "a.txt lines 1-1 of 1\n1| inside",
  );
});

test("refuses a NUL, and shows no control character of a path in its answer", async () => {
  const { refused } = await makeRepo();
  expect(await refused("read_file", { path: "a.txt\0.png" })).toMatch(
    /^'a\.txt<U\+0000>\.png' holds/,
  );
  expect(await refused("read_file", { path: "\u001b[31m" })).toMatch(
    /^'<U\+001B>\[31m' doesn't exist/,
  );
});

test("takes the root / for what it is, with nothing of /proc, /sys and /dev", async () => {
  const { root, base } = await makeRepo();
  const { call, refused } = toolsFor("/");
  expect(await call("read_file", { path: `${root.slice(1)}/a.txt` })).toMatch(/1\| inside$/);
  expect(await call("list_files", { path: base.slice(1) })).toContain("outside.txt");
  for (const path of ["proc/self/environ", "dev/zero", "sys/kernel/notes", "proc", "dev"]) {
    expect(await refused("read_file", { path })).toMatch(/can't be read|doesn't exist/);
  }
  expect(await call("list_files", {})).not.toMatch(/^(proc|sys|dev)\//m);
});

test("takes a root that is given by a link", async () => {
  const { base, refused } = await makeRepo();
  await symlink("repo", join(base, "linked"));
  const { call } = toolsFor(join(base, "linked"));
  expect(await call("read_file", { path: "a.txt" })).toMatch(/1\| inside$/);
  expect(await refused("read_file", { path: "../linked/a.txt" })).toMatch(/outside/);
});

test("refuses a root that is no folder of files", async () => {
  const { root } = await makeRepo();
  for (const wrong of ["", join(root, "a.txt"), join(root, "nowhere"), "/proc/self", "/dev"]) {
    expect(() => createRepoTools(wrong)).toThrow(TypeError);
    expect(() => createRepoTools(wrong)).toThrow(`got ${inspect(wrong)}`);
  }
});

// S02
test("follows no link out of the root, whichever part of the path it is", async () => {
  const { root, call, refused } = await makeRepo();
  const links = { link: "../repo-evil", pw: "/etc/passwd", up: "..", file: "../outside.txt" };
  for (const [name, target] of Object.entries(links)) await symlink(target, join(root, name));
  for (const path of ["link/s.txt", "pw", "up/repo-evil/s.txt", "file", "up/repo/../outside.txt"]) {
    expect(await refused("read_file", { path })).toMatch(
      /points outside the repo root. It's a link|doesn't/,
    );
  }
  for (const path of ["link", "up", "up/repo-evil"]) {
    expect(await refused("list_files", { path })).toMatch(
      /points outside the repo root. It's a link/,
    );
  }
  expect(await call("list_files", {})).toBe("a.txt 6 bytes");
  expect(await call("search", { pattern: `inside|root|${HIDDEN}` })).toBe("a.txt:1: inside");
});

test("names a link that leads to itself, and one that leads to nothing", async () => {
  const { root, call, refused } = await makeRepo();
  await symlink("loop", join(root, "loop"));
  await symlink("nowhere", join(root, "dang"));
  expect(await refused("read_file", { path: "loop" })).toBe(
    "'loop' is a link that leads to itself.",
  );
  expect(await refused("list_files", { path: "loop/x" })).toMatch(/leads to itself/);
  expect(await refused("read_file", { path: "dang" })).toBe("'dang' is a link to nothing.");
  expect(await refused("read_file", { path: "dang/x" })).toBe("'dang' is a link to nothing.");
  expect(await call("list_files", {})).toBe("a.txt 6 bytes");
});

test("follows a link inside the root where it's asked for, and never on a walk", async () => {
  const { root, call } = await makeRepo({ "repo/src/b.txt": "deep" });
  await symlink("src", join(root, "code"));
  await symlink("src/b.txt", join(root, "latest"));
  await symlink("..", join(root, "src/round"));
  expect(await call("read_file", { path: "code/b.txt" })).toBe("src/b.txt lines 1-1 of 1\n1| deep");
  expect(await call("list_files", { path: "code" })).toBe("src/b.txt 4 bytes\nsrc/round -> ./");
  expect(await call("list_files", {})).toBe(
    "a.txt 6 bytes\ncode -> src/\nlatest -> src/b.txt 4 bytes\nsrc/",
  );
  expect(await call("search", { pattern: "deep" })).toBe("src/b.txt:1: deep");
});

// S10
test("holds a link to a secret for the secret that it leads to", async () => {
  const { root, call, refused } = await makeRepo({
    "repo/.env": HIDDEN,
    "repo/sub/.git/config": HIDDEN,
  });
  await symlink(".env", join(root, "notes.txt"));
  await symlink("sub/.git", join(root, "history"));
  expect(await refused("read_file", { path: "notes.txt" })).toMatch(
    /'notes\.txt' may hold secrets/,
  );
  expect(await refused("read_file", { path: "history/config" })).toMatch(/may hold secrets/);
  expect(await refused("list_files", { path: "history" })).toMatch(/may hold secrets/);
  expect(await call("list_files", {})).toBe("a.txt 6 bytes\nsub/");
  expect(await call("search", { pattern: HIDDEN })).toMatch(/^No match/);
});

// S04
test.for([
  "..foo/x",
  "a..b",
  "...",
  "back\\slash",
  "-rf",
  "name with space",
  " leading",
  "trailing ",
  "dots...",
  "naïve-漢字-😀.txt",
  "~",
  "%2e%2e",
  "a:b",
])("reads, lists and searches a file called %j", async (path) => {
  const { call } = await makeRepo({ [`repo/${path}`]: "odd" });
  expect(await call("read_file", { path })).toBe(`${path} lines 1-1 of 1\n1| odd`);
  expect(await call("list_files", { glob: "**" })).toContain(`${path} 3 bytes`);
  expect(await call("search", { pattern: "odd" })).toBe(`${path}:1: odd`);
});

// S05
test("can't tell a hard link to a file outside from any other file", async () => {
  const { base, root, call } = await makeRepo();
  await link(join(base, "outside.txt"), join(root, "hard.txt"));
  expect(await call("read_file", { path: "hard.txt" })).toContain(HIDDEN);
});

// S07
test.for(["..\\..\\etc\\passwd", "C:\\Windows", "file.txt:stream", "c:\\repo\\a"])(
  "takes %j for a plain name, which doesn't exist",
  async (path) => {
    const { refused } = await makeRepo();
    expect(await refused("read_file", { path })).toBe(
      `'${path}' doesn't exist. In '.' there is 'a.txt'.`,
    );
  },
);

// S13
test("refuses pipes and sockets at once, and passes them by", async () => {
  const { root, call, refused } = await makeRepo();
  for (const name of ["p1", "p2", "p3", "p4", "p5"]) execFileSync("mkfifo", [join(root, name)]);
  const server = createServer().listen(join(root, "sock"));
  onTestFinished(() => void server.close());
  await once(server, "listening");
  for (const path of ["p1", "p2", "p3", "p4", "p5", "sock"]) {
    expect(await refused("read_file", { path })).toMatch(/is neither a file nor a folder/);
  }
  expect(await call("search", { pattern: "x|inside" })).toBe("a.txt:1: inside");
  expect(await call("list_files", {})).toBe("a.txt 6 bytes");
});

// S14
test("refuses devices and /proc, whose size says nothing", async () => {
  const { root, call, refused } = await makeRepo();
  await symlink("/dev/zero", join(root, "z"));
  await symlink("/proc/self/environ", join(root, "env"));
  for (const path of ["z", "env"]) {
    expect(await refused("read_file", { path })).toMatch(/points outside the repo root/);
  }
  expect(await call("search", { pattern: "." })).toBe("a.txt:1: inside");
});

test("no path whatever yields a byte from outside or from a secret file", async () => {
  const secrets = Object.fromEntries(SECRETS.map((path) => [`repo/${path}`, HIDDEN]));
  const { root, call } = await makeRepo({ ...secrets, "repo/src/b.txt": "deep" });
  const links = {
    out: "..",
    evil: "../repo-evil",
    txt: "../outside.txt",
    e: ".env",
    g: ".git",
    s: "src",
  };
  for (const [name, target] of Object.entries(links)) await symlink(target, join(root, name));
  await symlink("../..", join(root, "src/out"));
  await symlink("../.env", join(root, "src/e"));

  const names = [
    "a.txt",
    "src",
    "b.txt",
    "repo",
    "repo-evil",
    "s.txt",
    "outside.txt",
    "etc",
    "passwd",
  ];
  const dots = [
    "..",
    ".",
    "...",
    "%2e%2e",
    "..%2f",
    "．．",
    "․․",
    ".. ",
    "..\\..",
    "..\0",
    "",
    "~",
  ];
  const segment = fc.oneof(
    fc.constantFrom("..", ...names, ...Object.keys(links)),
    fc.constantFrom(...SECRETS.flatMap((path) => [path, path.toUpperCase(), ...path.split("/")])),
    fc.constantFrom(...dots),
    fc.string({ unit: "binary", maxLength: 3 }),
  );
  const separator = fc.constantFrom("/", "/", "/", "//", "\\", "/./", "%2f", "\0");
  const ending = fc.constantFrom("", "", "/", ".", " ", "/.", "\0", "::$DATA");
  const start = fc.constantFrom("", "", "", "/", "./", `${root}/`, "file://", "\\\\?\\");
  const path = fc
    .tuple(start, fc.array(fc.tuple(segment, separator), { maxLength: 4 }), segment, ending)
    .map(([first, middle, last, end]) => [first, ...middle.flat(), last, end].join(""));

  let shown = 0;
  const run = async (name: Name, input: object) => {
    try {
      const text = await call(name, input);
      shown += 1;
      return text;
    } catch (error) {
      if (error instanceof ToolError) return error.message;
      throw error;
    }
  };
  await fc.assert(
    fc.asyncProperty(path, async (path) => {
      const glob = path.replaceAll("..", "*");
      expect(await run("read_file", { path })).not.toContain(HIDDEN);
      const listed = await run("list_files", { path });
      expect(listed).not.toMatch(/(s|outside|passwd)(\.txt)? \d+ bytes/);
      expect(secretsIn(listed)).toEqual([]);
      expect(await run("search", { pattern: ".", glob })).not.toContain(HIDDEN);
    }),
    { numRuns: 300 },
  );
  expect(shown).toBeGreaterThan(50);
});

test("reads nothing from outside while a folder is swapped for a link", async () => {
  const { base, root } = await makeRepo({ "repo/dir/s.txt": "inside" });
  const swapper = spawn(process.execPath, ["--eval", SWAPPER], { cwd: base });
  onTestFinished(() => void swapper.kill("SIGKILL"));
  await once(swapper.stdout, "data");
  const sandbox = createSandbox(root);
  const outcomes = new Set<string>();
  for (let round = 0; round < 3_000; round += 1) {
    outcomes.add(await contentOf(sandbox, "dir/s.txt"));
  }
  expect(outcomes).toEqual(new Set(["inside", "refused"]));
});

test("refuses a file that isn't where it was opened, as the kernel says", async () => {
  const { base, root } = await makeRepo();
  const openFiles = join(base, "open");
  await mkdir(openFiles);
  for (let handle = 0; handle < 100; handle += 1) {
    await symlink("/somewhere/else", join(openFiles, String(handle)));
  }
  expect(await contentOf(createSandbox(root, { openFiles }), "a.txt")).toBe("refused");
});

test("reads where the kernel doesn't say what is open", async () => {
  const { root } = await makeRepo();
  expect(await contentOf(createSandbox(root, { openFiles: "/nowhere" }), "a.txt")).toBe("inside");
});

async function contentOf(sandbox: Sandbox, path: string): Promise<string> {
  const use = async ({ read }: OpenFile) => {
    const bytes = Buffer.alloc(100);
    return bytes.toString("utf8", 0, read(bytes, 0));
  };
  return withFile(sandbox, path, use).catch((error: unknown) =>
    error instanceof ToolError ? "refused" : String(error),
  );
}

/** Puts `repo/dir` and a link to `repo-evil` in turn at the same place, as fast as it can. */
const SWAPPER = `
  const { renameSync, symlinkSync } = require("node:fs");
  symlinkSync("../repo-evil", "link");
  process.stdout.write("ready");
  for (;;) {
    renameSync("repo/dir", "away");
    renameSync("link", "repo/dir");
    renameSync("repo/dir", "link");
    renameSync("away", "repo/dir");
  }
`;

/** The paths in a list of files that are secrets by their names. */
function secretsIn(list: string): readonly string[] {
  const paths = [...list.matchAll(/^(.*?)(\/|( -> .*?)? \d+ bytes)$/gm)].map(
    ([, path = ""]) => path,
  );
  return paths.filter((path) => isSecret(path.split("/")));
}

test("lets go of every file that it opened", async () => {
  const { call, refused } = await makeRepo();
  const countOpen = async () => (await readdir("/proc/self/fd")).length;
  const before = await countOpen();
  await call("read_file", { path: "a.txt" });
  await refused("read_file", { path: "a.txt", start_line: 9 });
  await call("search", { pattern: "inside" });
  expect(await countOpen()).toBe(before);
});
