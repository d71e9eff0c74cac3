/**
 * What no tool shows, by the name of the file or of any folder above it, in any case:
 *
 *     .env* and *.env           but .env.example, .env.sample, .env.template (.env.prod.example too)
 *     *.pem *.key *.p12 *.pfx   and *.jks, *.keystore, *.ppk, *.kdbx
 *     id_rsa* id_ed25519* …     the public halves too
 *     .git .hg .svn .jj         folders, and the file that a worktree or submodule has instead
 *     .npmrc .pypirc .netrc     and _netrc, .pgpass, .htpasswd, .dockercfg, .git-credentials
 *     .ssh .aws .gnupg          and .azure, .gcloud, .kube, .docker
 *     credentials*.json …       credential(s), secret(s) and service-account as data (.json, .yaml,
 *                               .toml, .txt, …), such as client_secret_1.json; also *.tfstate
 *
 * Code about secrets may be read (secrets.ts, src/credentials/), and so may what these names don't
 * tell: a key pasted into config.ts is shown.
 * A name is compared without the dots and spaces at its end, which Windows drops, and with look-alike
 * letters folded (ｉd_rsa). The rule holds for the path asked for and for the one it leads to.
 */

const SECRET_NAMES: readonly RegExp[] = [
  /^\.env(?!.*\.(example|sample|template)$)/,
  /.\.env$/,
  /\.(pem|key|p12|pfx|jks|keystore|ppk|kdbx|tfstate|tfstate\.backup)$/,
  /^id_(rsa|dsa|ecdsa|ed25519)/,
  /^(\.git|\.hg|\.svn|\.jj|\.git-credentials)$/,
  /^(\.npmrc|\.pypirc|\.netrc|_netrc|\.pgpass|\.htpasswd|\.dockercfg)$/,
  /^(\.ssh|\.aws|\.gnupg|\.azure|\.gcloud|\.kube|\.docker)$/,
  /^(.*[._-])?(credentials?|secrets?|service[_-]?account)([._-].*)?\.(json|ya?ml|toml|ini|cfg|conf|config|properties|xml|csv|txt|enc)$/,
];

/** Whether one of the path's parts is the name of a secret. */
export function isSecret(parts: readonly string[]): boolean {
  return parts.some((part) => {
    const name = part
      .normalize("NFKC")
      .toLowerCase()
      .replace(/[. ]+$/, "");
    return SECRET_NAMES.some((pattern) => pattern.test(name));
  });
}
