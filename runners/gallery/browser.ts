/**
 * Opens a page in the browser, where there is one.
 */
import open from "open";

/** Gives whether it was opened: on a computer without a desktop, it isn't. */
export async function openBrowser(url: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const isHeadless =
    process.platform === "linux" && !env.DISPLAY && !env.WAYLAND_DISPLAY && !env.WSL_DISTRO_NAME;
  if (isHeadless) return false;
  try {
    const child = await open(url);
    // What goes wrong later is the browser's own, and the path is printed all the same.
    child.on("error", () => {});
    return true;
  } catch {
    return false;
  }
}
