import { render } from "preact";

/** Takes away all that is drawn, and waits for the frame that was asked for: when the test file has ended it would find no window. */
export async function putAway(): Promise<void> {
  for (const root of document.body.children) {
    render(null, root);
  }
  await new Promise((resolve) => requestAnimationFrame(resolve));
  // What the frame leads to comes in a turn of its own.
  await new Promise((resolve) => setTimeout(resolve));
}
