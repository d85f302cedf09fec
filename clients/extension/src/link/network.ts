/** The network of the machine, as far as the browser knows it. A server on this machine does not need it. */

/** Calls back each time that it is there again; returns what ends that. */
export function watchNetwork(scope: EventTarget, back: () => void): () => void {
  const listener = () => back();
  scope.addEventListener("online", listener);
  return () => scope.removeEventListener("online", listener);
}
