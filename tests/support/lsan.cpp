// What LeakSanitizer is to pass by in the test programs.
extern "C" const char*
__lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): LeakSanitizer's name

// libssh 0.10 forgets the agent's first list of keys (one ssh_buffer a session) when ssh_userauth_agent()
// asks a second time. This project itself makes no ssh_buffer.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:ssh_buffer_new\n";
}
