/** Answers of commands, as short as cases want to write them. */
import type { CommandOptions, CommandStage, Kind } from "../stage.js";

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Runs a command and leaves out the lists of its side effects in which there is nothing. */
export async function told(stage: CommandStage, kind: Kind, options?: CommandOptions): Promise<unknown> {
  const answer = await stage.command(kind, options);
  if (!isFields(answer) || !isFields(answer.sideEffects)) {
    return answer;
  }
  const effects = Object.entries(answer.sideEffects).filter(
    ([, value]) => !(Array.isArray(value) && value.length === 0),
  );
  return { ...answer, sideEffects: Object.fromEntries(effects) };
}
