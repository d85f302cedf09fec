package cli_test

import (
	"testing"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func restored(device, name string, count uint32, statuses ...commandv1.ItemStatus) *controlv1.DeviceOutcome {
	out := &commandv1.RestoreTabs_Result{RestoredCount: count}
	for _, s := range statuses {
		out.Items = append(out.Items, &commandv1.ItemOutcome{Id: "saved-1", Status: s, NewId: device + "_t1-7"})
	}
	return &controlv1.DeviceOutcome{
		DeviceId: device, DeviceName: name, CommandId: "cmd-9",
		Outcome: &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{Kind: &commandv1.Result_RestoreTabs{RestoreTabs: out}}},
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onUndo = func(req *controlv1.UndoRequest) (*controlv1.UndoResponse, error) {
			answer := &controlv1.UndoResponse{UndoneCommandIds: []string{"cmd-2", "cmd-77"}}
			switch {
			case req.GetDryRun():
				answer.Outcomes = []*controlv1.DeviceOutcome{{
					DeviceId: laptop, DeviceName: "laptop", Outcome: &controlv1.DeviceOutcome_Plan{Plan: &controlv1.Plan{
						Action:  &commandv1.Action{Kind: &commandv1.Action_RestoreTabs{RestoreTabs: &commandv1.RestoreTabs{}}},
						Targets: []*controlv1.PlannedTarget{{Id: "saved-1", Status: okStatus, Title: "Cats", Url: "https://cats.example/"}},
					}},
				}}
			case req.GetDeviceId() != "":
				answer.Outcomes = []*controlv1.DeviceOutcome{restored(laptop, "laptop", 1, okStatus, goneStatus)}
			case req.GetCommandId() == "cmd-0":
				answer = &controlv1.UndoResponse{}
			case req.GetCommandId() == "cmd-1":
				answer.Outcomes = []*controlv1.DeviceOutcome{failed(work, "work", commandv1.ErrorCode_ERROR_CODE_OFFLINE)}
			default:
				answer.Outcomes = []*controlv1.DeviceOutcome{
					restored(laptop, "laptop", 2, okStatus, okStatus), failed(work, "work", commandv1.ErrorCode_ERROR_CODE_OFFLINE),
				}
			}
			return answer, nil
		}
	})
	several := f.run(t, "undo")
	several.check(t, 7, "restored 2 tabs on 1 device; 1 offline")
	golden(t, "undo", several.out, "")
	one := f.run(t, "undo", "cmd-2", "--device", "laptop")
	one.check(t, 7)
	golden(t, "undo_device", one.out, "")
	dry := f.run(t, "undo", "--dry-run")
	dry.check(t, 0)
	golden(t, "undo_dry_run", dry.out, "")
	f.run(t, "undo", "cmd-1").check(t, 3, "work (p4w7h2nnbc)  offline: because")
	f.run(t, "undo", "cmd-0").check(t, 1, "There is nothing to bring back.")
	f.run(t, "undo", "--device", "all", "-o", "json").check(t, 7, `"undoneCommandIds": [`, `"restoredCount": 2`)
	f.run(t, "undo", "a", "b").check(t, 2, "takes no \"b\"")
	f.run(t, "undo", "--device", "nowhere").check(t, 2, "no device is called \"nowhere\"")
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, second := f.undone[0], f.undone[1]; first.CommandId != nil || first.DeviceId != nil ||
		second.GetCommandId() != "cmd-2" || second.GetDeviceId() != laptop {
		t.Errorf("asked %v, then %v", first, second)
	}
	newFake(t).run(t, "undo").check(t, 1, "throwbar: undo: no command has taken anything away\n")
}
