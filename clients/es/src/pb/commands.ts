export * from "../../../../gen/es/throwbar/control/v1/commands_pb.js";
