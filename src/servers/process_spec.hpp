#pragma once

#include <string>

#include <remote/launch.hpp>

namespace remote::servers {

// What is to run on a server, in the foreground or as a job.
struct ProcessSpec {
  std::string command;   // run by bash where the server has it, else sh
  std::string activate;  // sh text that enters the Python environment; may be ""
  Env env;               // exported, in this order; may hold secrets
};

}  // namespace remote::servers
