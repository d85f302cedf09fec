import { type CompositeId, formatId, type IdKind, parseId } from "@throwbar/es/ids";

/** What the composite ids of this start of this browser are made of. */
export interface Identity {
  readonly device: string;
  readonly boot: string;
}

export function compositeId(identity: Identity, kind: IdKind, native: number): string {
  return formatId({ ...identity, kind, native });
}

/** "invalid" if the id has another form or kind, "stale" if it is of another device or an earlier start of the browser. */
export function nativeId(identity: Identity, kind: IdKind, id: string): number | "invalid" | "stale" {
  const parsed: CompositeId | undefined = parseId(id);
  if (parsed === undefined || parsed.kind !== kind) {
    return "invalid";
  }
  return parsed.device === identity.device && parsed.boot === identity.boot ? parsed.native : "stale";
}
