export * from "../../../../gen/es/throwbar/control/v1/policy_pb.js";
