/** What a person is told when a call fails, and the error that a command answers with. */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type CommandError, CommandErrorSchema, ErrorCode } from "./pb/command.js";

/** A function, so that a program that makes no calls does not carry the texts along. */
function callTextOf(code: Code): string | undefined {
  switch (code) {
    case Code.Unavailable:
      return "The server cannot be reached.";
    case Code.DeadlineExceeded:
      return "The server did not answer in time.";
    case Code.Unauthenticated:
      return "The server does not accept this token.";
    case Code.PermissionDenied:
      return "The server refuses this.";
    case Code.Unimplemented:
      return "The server does not know this call; it may be older than this program.";
    default:
      return undefined;
  }
}

/** One line about a failed call. The server's own words win where there are any: they say what to do. */
export function callText(error: unknown): string {
  const failure = ConnectError.from(error);
  // fetch says "Failed to fetch" or "fetch failed" and nothing else when there is no server.
  const unreachable = failure.code === Code.Unavailable || failure.cause instanceof TypeError;
  const general = callTextOf(unreachable ? Code.Unavailable : failure.code);
  const own = unreachable ? "" : failure.rawMessage;
  return own || (general ?? "The call failed.");
}

/** Thrown by a command that has no result. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly retryable = false,
  ) {
    super(message);
  }

  toMessage(): CommandError {
    return create(CommandErrorSchema, { code: this.code, message: this.message, retryable: this.retryable });
  }
}

/** The failure behind anything that was thrown. */
export function commandFailure(error: unknown): CommandFailure {
  if (error instanceof CommandFailure) {
    return error;
  }
  return new CommandFailure(ErrorCode.FAILED, error instanceof Error ? error.message : String(error));
}
