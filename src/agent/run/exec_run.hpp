#pragma once

// The process that becomes the command, the shell or the debugger's client of a wire::RunRequest.

namespace remote::agent {

// The descriptor with the encoded request.
constexpr int run_request_fd = 9;

// `remote-agent exec-run`. Does not return, unless the arguments are wrong.
//   begin                            the process forked by start_run()
//   read                             a shell has read the startup files
//   entered STATUS PROLOGUE_STATUS   a shell has evaluated the text that enters the Python environment
int run_exec_run(int count, char** words);

}  // namespace remote::agent
