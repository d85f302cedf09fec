package history_test

// sample is a text, and how many tokens ten of it in a row are in two vocabularies, counted with gpt-tokenizer 4.0.0.
type sample struct {
	text          string
	o200k, cl100k int
}

func samples() []sample {
	return []sample{
		{`Please close all tabs about the holiday, but keep the ones with the tickets open. `, 171, 171},
		{`{"ok":true,"mark":"k3x9ab","data":{"tabs":[{"tabId":"lap_tb7f3a9-1042","windowId":"lap_w7f3a9-3","url":"https://example.org/news/2026/11/28?ref=a1","title":"News of today"}],"total":1},"end":"k3x9ab"}`, 830, 820},
		{`3f9a1c2e-77b0-4c55-9e21-aa01c4d29be7 `, 290, 300},
		{`Bitte schließe alle Tabs über Zürich und öffne danach die Fahrpläne für München. `, 191, 231},
		{`Закрой, пожалуйста, все вкладки про отпуск и открой расписание поездов. `, 181, 341},
		{`關閉所有關於假期的分頁，然後打開火車時刻表。`, 210, 300},
		{`休暇に関するタブをすべて閉じて、列車の時刻表を開いてください。`, 260, 340},
		{`휴가에 관한 모든 탭을 닫고 기차 시간표를 열어 주세요. `, 201, 291},
		{`أغلق جميع علامات التبويب الخاصة بالعطلة وافتح جدول القطارات. `, 172, 411},
		{`छुट्टियों से जुड़े सभी टैब बंद करें और ट्रेन की समय सारणी खोलें। `, 192, 681},
		{`ปิดแท็บทั้งหมดเกี่ยวกับวันหยุดแล้วเปิดตารางรถไฟ `, 161, 450},
		{"👩\u200d👩\u200d👧👍🏽🇨🇭🎉", 170, 280},
		{"if err != nil {\n\t\treturn fmt.Errorf(\"read rows: %w\", err)\n\t}\n", 200, 200},
		{`Κλείσε όλες τις καρτέλες για τις διακοπές. `, 151, 381},
		{`iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4`, 310, 320},
		{`Don't close the 3 pinned tabs; mute everything else, and tell me what's playing on "Work Laptop" (if it's online). `, 271, 301},
	}
}
