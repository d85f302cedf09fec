/**
 * Composite ids of tabs, windows and groups: `<device id>_<letter><boot tag>-<native id>`, for example
 * k3v9x2mqta_t7fq2-1043. The rules are those of the Go package ident; testdata/ids.json holds both to them.
 */
export type IdKind = "tab" | "window" | "group";

export interface CompositeId {
  readonly device: string;
  readonly kind: IdKind;
  /** Changes when the browser restarts, so that a native number that is used again never hits a stranger's tab. */
  readonly boot: string;
  readonly native: number;
}

const letters: Record<IdKind, string> = { tab: "t", window: "w", group: "g" };
const kinds: Record<string, IdKind> = { t: "tab", w: "window", g: "group" };
const deviceForm = /^[a-z0-9]{1,32}$/;
const bootForm = /^[a-z0-9]{0,16}$/;
const numberForm = /^(0|[1-9][0-9]{0,18})$/;
const base32 = "abcdefghijklmnopqrstuvwxyz234567";
const bootTagLength = 4;

export function formatId(id: CompositeId): string {
  return `${id.device}_${letters[id.kind]}${id.boot}-${id.native}`;
}

/** Takes a composite id apart; undefined if it is none. */
export function parseId(text: string): CompositeId | undefined {
  const cut = text.indexOf("_");
  if (cut < 0) {
    return undefined;
  }
  const device = text.slice(0, cut);
  const kind = kinds[text.charAt(cut + 1)];
  const rest = text.slice(cut + 2);
  const dash = rest.indexOf("-");
  if (!validDeviceId(device) || kind === undefined || dash < 0) {
    return undefined;
  }
  const boot = rest.slice(0, dash);
  const number = rest.slice(dash + 1);
  if (!bootForm.test(boot) || !numberForm.test(number) || BigInt(number) > 0x7fff_ffff_ffff_ffffn) {
    return undefined;
  }
  return { device, kind, boot, native: Number(number) };
}

export function validDeviceId(id: string): boolean {
  return deviceForm.test(id);
}

/** A new boot tag: four random lower-case base32 characters. */
export function newBootTag(random: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array): string {
  const bytes = random(new Uint8Array(bootTagLength));
  return Array.from(bytes, (byte) => base32.charAt(byte & 31)).join("");
}
