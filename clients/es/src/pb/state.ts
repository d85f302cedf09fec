export * from "../../../../gen/es/throwbar/command/v1/state_pb.js";
