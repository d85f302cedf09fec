/** Results in few words: counts and items, and of the side effects those that there are. */
import type { CommandOptions, CommandStage, Kind } from "../stage.js";

function brief(told: unknown): unknown {
  if (typeof told !== "object" || told === null) {
    return told;
  }
  const { sideEffects, ...rest } = told as { readonly sideEffects?: object };
  const effects = Object.entries(sideEffects ?? {}).filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return sideEffects === undefined ? rest : { ...rest, ...Object.fromEntries(effects) };
}

export async function does(stage: CommandStage, kind: Kind, options?: CommandOptions): Promise<unknown> {
  return brief(await stage.command(kind, options));
}

/** Begins a command whose answer is waited for later. */
export function begins(stage: CommandStage, kind: Kind, options?: CommandOptions): () => Promise<unknown> {
  const outcome = stage.deliver(kind, options);
  return async () => brief(await stage.told(await outcome));
}
