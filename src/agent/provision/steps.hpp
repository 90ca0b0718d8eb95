#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/host/path.hpp"
#include "agent/host/run.hpp"
#include "agent/serve/stream.hpp"
#include "wire/provision.hpp"

namespace remote::agent {

// Runs the programs of a provisioning, and reports progress to the client.
class Steps {
 public:
  using Command = std::vector<std::string>;

  // Runs the prologue. Throws ProvisionError.
  Steps(const Host& host, const std::string& prologue, Stream& stream);

  // The host with the environment for the programs.
  Host& host() { return host_; }
  void begin(const std::string& step);
  void note(const std::string& text);
  void send_out(std::string_view text) { send_output(text, &wire::ProvisionReply::out); }
  void send_errors(std::string_view text) { send_output(text, &wire::ProvisionReply::errors); }
  // Throws ProvisionError if the client has disconnected.
  void check_client() const;
  // Sets the working directory of programs.
  void enter_folder(const Path& folder);
  // Sets a descriptor that programs inherit; -1: none.
  void pass_on(int descriptor) { inherited_ = descriptor; }

  // These throw ProvisionError if the client has disconnected. The program and its process group then get
  // TERM, and KILL 5 seconds later.

  // Returns whether the program exits with 0. Its output is sent to the client, and `errors` also gets its
  // stderr.
  bool run(const Command& command, std::string* errors = nullptr);
  bool run_silently(const Command& command);
  // Returns the output if the program exits with 0. Its output and stderr are not sent.
  std::optional<std::string> read(const Command& command);
  // Returns its stdout and stderr, which are not sent.
  RunResult read_all(const Command& command);

 private:
  void send_output(std::string_view text, std::string wire::ProvisionReply::*field);
  RunResult run_program(const Command& command, RunRequest request);

  Host host_;
  std::string limits_;
  Stream& stream_;
  Path folder_;
  int inherited_ = -1;
};

}  // namespace remote::agent
