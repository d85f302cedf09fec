export * from "../../../../gen/es/throwbar/control/v1/devices_pb.js";
