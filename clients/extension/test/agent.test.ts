import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { AgentService, EventSchema } from "@throwbar/es/pb/agent";
import { expect, test } from "vitest";
import { connectAgent } from "../src/panel/agent.js";

test("whoever reads on in a long conversation reads its last page again, and no other", async () => {
  const asked: string[] = [];
  const stored = 450;
  let extra = 0;
  const agent = connectAgent(
    createRouterTransport(({ service }) => {
      service(AgentService, {
        listEvents: ({ pageSize = 0, pageToken = "" }) => {
          asked.push(pageToken);
          const from = pageToken === "" ? 0 : Number(pageToken.slice(1));
          const to = Math.min(from + pageSize, stored + extra);
          const events = Array.from({ length: to - from }, (_, at) =>
            create(EventSchema, { sequence: BigInt(from + at + 1) }),
          );
          return { events, nextPageToken: to < stored + extra ? `p${to}` : "" };
        },
      });
    }),
  );
  const all = await agent.events("conv", 0n);
  expect(all.map(({ sequence }) => sequence)).toEqual(Array.from({ length: stored }, (_, at) => BigInt(at + 1)));
  expect(asked.splice(0)).toEqual(["", "p200", "p400"]);
  extra = 2;
  expect((await agent.events("conv", 450n)).map(({ sequence }) => sequence)).toEqual([451n, 452n]);
  expect(asked.splice(0)).toEqual(["p400"]);
  extra = 200;
  expect(await agent.events("conv", 452n)).toHaveLength(198);
  expect(asked.splice(0)).toEqual(["p400", "p600"]);
  expect(await agent.events("conv", 0n)).toHaveLength(650);
  expect(asked[0]).toBe("");
});
