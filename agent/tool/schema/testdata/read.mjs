// Reads messages with protobuf-es as a device does, and prints each as JSON: a line in, a line out.
//
// A line of one word is a set of descriptors, which the lines after it are of: the name of a type and the bytes of a
// message. Sets and bytes are in base64.
import { createInterface } from "node:readline";
import { createFileRegistry, fromBinary, fromJson, toBinary, toJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
let registry;

for await (const line of createInterface({ input: process.stdin })) {
  const [name, raw] = line.split(" ");
  if (raw === undefined) {
    registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes(name)));
    continue;
  }
  const type = registry.getMessage(name);
  const message = fromBinary(type, bytes(raw));
  const json = toJson(type, message, { registry });
  const again = Buffer.from(toBinary(type, fromJson(type, json, { registry }))).toString("base64");
  console.log(`${again} ${JSON.stringify(json)}`);
}
