/**
 * What no tool shows, by the name of the file or of any folder above it, in any case:
 *
 *     .env* and *.env           and prod.env.local; but .env.example, .env.sample, .env.template
 *     *.pem *.key *.p8 *.p12    and *.pfx, *.jks, *.keystore, *.ppk, *.kdbx, *.tfvars, *.tfstate
 *     id_rsa* id_ed25519* …     the public halves too
 *     .git .hg .svn .jj         folders, and the file that a worktree or submodule has instead
 *     .npmrc .pypirc .netrc     and _netrc, .pgpass, .htpasswd, .dockercfg, .git-credentials,
 *                               .my.cnf, .s3cfg, kubeconfig
 *     .ssh .aws .gnupg          and .azure, .gcloud, .kube, .docker
 *     credentials*.json …       credential(s), secret(s) and service-account as data (.json, .yaml,
 *                               .toml, .txt, …), such as client_secret_1.json; and credentials in
 *                               a folder whose name begins with a dot, such as .cargo
 *
 * Code about secrets may be read (secrets.ts, src/credentials/), and so may what these names don't
 * tell: a key pasted into config.ts is shown.
 * A copy is as secret as the file: server.key.bak, .npmrc~, key.pem.old, #.env#.
 * A name is compared without the dots and spaces at its end, which Windows drops, and with look-alike
 * letters folded (ｉd_rsa). The rule holds for the path asked for and for the one it leads to.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/secrets.ts
 */

const SECRET_NAMES: readonly RegExp[] = [
  /^\.env(?!.*\.(example|sample|template)$)/,
  /.\.env(\.local)?$/,
  /\.(pem|key|p8|p12|pfx|jks|keystore|ppk|kdbx|tfvars|tfstate|tfstate\.backup)$/,
  /^id_(rsa|dsa|ecdsa|ed25519)/,
  /^(\.git|\.hg|\.svn|\.jj|\.git-credentials)$/,
  /^(\.npmrc|\.pypirc|\.netrc|_netrc|\.pgpass|\.htpasswd|\.dockercfg|\.my\.cnf|\.s3cfg|kubeconfig)$/,
  /^(\.ssh|\.aws|\.gnupg|\.azure|\.gcloud|\.kube|\.docker)$/,
  /^(.*[._-])?(credentials?|secrets?|service[_-]?account)([._-].*)?\.(json|ya?ml|toml|ini|cfg|conf|config|properties|xml|csv|txt|enc)$/,
];

/** What editors and people add to the name of a copy. */
const COPY = /^#(.+)#$|^(.+?)(~|\.(bak|backup|old|orig|save|swp|tmp))+$/;

/** Whether one of the path's parts is the name of a secret. */
export function isSecret(parts: readonly string[]): boolean {
  return parts.some((part, index) => {
    const name = folded(part).replace(/[. ]+$/, "");
    const [, hash, other] = COPY.exec(name) ?? [];
    const names = [name, hash ?? other ?? name];
    if (names.includes("credentials") && parts[index - 1]?.startsWith(".")) return true;
    return names.some((name) => SECRET_NAMES.some((pattern) => pattern.test(name)));
  });
}

/** The name in a form in which those are equal that look alike: in lower case, `ｉd_rsa` as `id_rsa`. */
export function folded(name: string): string {
  return name.normalize("NFKC").toLowerCase();
}
