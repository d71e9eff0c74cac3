/**
 * Opens a page in the browser, where there is one.
 */
import open from "open";

/** Gives whether it was opened: on a computer without a desktop, it isn't. */
export async function openBrowser(url: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const { DISPLAY, WAYLAND_DISPLAY, WSL_DISTRO_NAME } = env;
  const hasDesktop = DISPLAY || WAYLAND_DISPLAY || WSL_DISTRO_NAME;
  if (process.platform === "linux" && !hasDesktop) return false;
  try {
    const child = await open(url);
    // What goes wrong later is the browser's own, and the path is printed all the same.
    child.on("error", () => {});
    return true;
  } catch {
    return false;
  }
}
