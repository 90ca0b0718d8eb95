#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/start.hpp"

// Changes the environment of this process, which is about to become a job. Not thread-safe.

namespace remote::agent {

// "" if it is not set.
std::string get_variable(const char* name);
void set_variable(const std::string& name, const std::string& value);
// Inserts an entry at the beginning of a colon-separated list.
void prepend_variable(const char* name, const std::string& entry);
bool is_on_path(const char* program);
// Expands a path of the spec: "~", "~/x" and "x" are relative to $HOME.
std::string expand_path(const std::string& path);

// Changes the working directory like a shell's cd, which keeps the names of links in PWD. Returns false on
// failure.
bool enter_logical_folder(const std::string& folder);

// Quotes the text as one word of a shell command.
std::string quote_word(std::string_view word);
// Makes the descriptor inheritable under this number.
void pass_on(int fd, int number);

// Does what lib/activate.sh does. Returns false, without a change, if only a shell can do it, because conda's
// packages have hooks.
bool enter_environment(const wire::PythonEnvironment& environment);

// Sets the variables in the lines NAME=VALUE whose names begin with a capital letter, then the port in
// INIT_METHOD.
void set_variables(std::string_view lines);
// Gives this attempt a rendezvous of its own, so that it cannot meet processes of earlier attempts.
void separate_attempt();

// Sets each variable that is not set. Skips variables of NCCL that nccl.conf sets, because a variable would
// override that file.
void set_defaults(const std::vector<wire::Variable>& variables);

// Restores the account's variables that Host::list_job_variables() has hidden. Returns false if there are
// exported functions of bash, which only bash can define.
bool restore_account_variables();

}  // namespace remote::agent
