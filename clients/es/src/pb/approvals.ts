export * from "../../../../gen/es/throwbar/control/v1/approvals_pb.js";
