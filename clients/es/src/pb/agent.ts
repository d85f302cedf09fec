export * from "../../../../gen/es/throwbar/agent/v1/agent_pb.js";
export * from "../../../../gen/es/throwbar/agent/v1/conversation_pb.js";
export * from "../../../../gen/es/throwbar/agent/v1/event_pb.js";
export * from "../../../../gen/es/throwbar/agent/v1/facility_pb.js";
export * from "../../../../gen/es/throwbar/agent/v1/request_pb.js";
