package schema

// Profile is a form in which tools are described to a model.
type Profile string

// The profiles. The zero value is ProfilePortable.
const (
	ProfilePortable Profile = "portable"      // what nearly every provider takes
	ProfileStrict   Profile = "openai-strict" // OpenAI's strict mode
	ProfileGemini   Profile = "gemini"        // Gemini's subset of OpenAPI
	ProfileLocal    Profile = "local"         // local servers, as llama.cpp and Ollama
)
