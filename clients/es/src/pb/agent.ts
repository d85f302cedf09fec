export * from "../../../../gen/es/throwbar/agent/v1/agent_pb.js";
