// Leaks that LeakSanitizer ignores in the test programs.
extern "C" const char*
__lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): LeakSanitizer's name

// libssh 0.10 leaks the agent's first list of keys (one ssh_buffer per session) if ssh_userauth_agent() is
// called twice. This project itself makes no ssh_buffer.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:ssh_buffer_new\n";
}
