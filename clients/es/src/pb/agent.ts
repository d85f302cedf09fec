export * from "../../../../gen/es/throwbar/agent/v1/agent_pb.js";
export * from "../../../../gen/es/throwbar/agent/v1/facility_pb.js";
