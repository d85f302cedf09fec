export * from "../../../../gen/es/throwbar/option/v1/option_pb.js";
