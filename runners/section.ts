/**
 * One pull request is reviewed for security, performance and compatibility, all at the same time.
 *
 *   npm start section                    replays the recording
 *   npm run live section "<diff>"        calls the API
 *
 * Each reviewer is told to look at one thing only, and what not to look at. Before any of them, code
 * counts the lines: a section need not be a call.
 *
 * From effective-agents 0.1.0: runners/section.ts
 */
import type { Context } from "../patterns/llm-call.ts";
import { section } from "../patterns/section.ts";
import { tagged } from "../patterns/xml.ts";
import { defineJob } from "./shared/job.ts";

const DIFF = `--- a/src/api/avatars.ts
+++ b/src/api/avatars.ts
@@ -5,16 +5,27 @@
-/** GET /avatars/:user */
+const run = promisify(exec);
+
+/** GET /avatars/:user?size=64 */
 export async function getAvatar(req: Request, res: Response) {
   const user = await db.users.byId(req.params.user);
   if (!user) return res.status(404).end();
-  const file = join(AVATARS, user.avatarFile);
-  res.type("image/png").send(await readFile(file));
+  const size = req.query.size ?? "256";
+  const source = join(AVATARS, user.avatarFile);
+  const target = join("/tmp", \`\${user.id}-\${size}.webp\`);
+  await run(\`convert \${source} -resize \${size}x\${size} \${target}\`);
+  res.type("image/webp").send(await readFile(target));
 }
 
-/** GET /avatars?team=… */
+/** GET /avatars?team=…, now with each member's role and last activity */
 export async function listAvatars(req: Request, res: Response) {
   const members = await db.teams.members(req.query.team);
-  res.json(members.map((m) => ({ id: m.id, url: \`/avatars/\${m.id}\` })));
+  const items = [];
+  for (const m of members) {
+    const user = await db.users.byId(m.id);
+    const last = await db.events.lastOf(m.id);
+    items.push({ userId: m.id, url: \`/avatars/\${m.id}\`, role: user.role, lastActive: last?.at });
+  }
+  res.json({ items });
 }`;

const reviewer =
  (aspect: string, leaveOut: string) =>
  (diff: string, { llm }: Context) =>
    llm(`You review a pull request of a web service for ${aspect}, and for nothing else. Others look at ${leaveOut} at the same time, so leave that to them.

${tagged("diff", diff)}

Report only what this diff brings in, what is serious first. For each finding a line: the function, what is wrong, what can happen, how to mend it. No praise, no summary. If there is nothing, answer "nothing found".`);

export const job = defineJob({
  title: "one pull request, three reviewers at once",
  input: DIFF,
  run: (diff, { llm, signal }) =>
    section(diff, {
      llm,
      signal,
      sections: {
        size: (diff) => (diff.match(/^[+-](?![+-]{2})/gm) ?? []).length,
        security: reviewer("security", "performance and compatibility"),
        performance: reviewer("performance under load", "security and compatibility"),
        compatibility: reviewer(
          "what breaks for clients that call this API today, and for the servers it runs on",
          "security and performance",
        ),
      },
    }),
  tell: ({ status, outputs }) => {
    const reviews = Object.entries(outputs).filter(([name]) => name !== "size");
    const texts = reviews.map(([name, text]) => `${name.toUpperCase()}\n${text}`);
    return `${outputs.size} changed lines\n\n${texts.join("\n\n")}\n\n${status}`;
  },
});
