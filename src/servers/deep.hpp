#pragma once

#include <string>

#include <remote/facts.hpp>

#include "servers/answer.hpp"

// What torch is once it is imported, as src/server/deep.py tells it. The lines are described in
// docs/protocol.md.

namespace remote::servers {

struct DeepAnswer {
  ImportFacts facts;

  void take(AnswerLine& line);
};

// The line for the server's shell that runs the script, given the text of it in the variable REMOTE_DEEP.
std::string deep_command();
// That text.
std::string deep_program();

}  // namespace remote::servers
