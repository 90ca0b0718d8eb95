#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/events.hpp>
#include <remote/report.hpp>

#include "config/config.hpp"
#include "jobs/store.hpp"
#include "ssh/connection.hpp"

namespace remote::project {

// The part of a server's setup that is known without asking the server: the code that was sent to it, and the
// variables of these processes. `changed`: the reported changes of the code.
ServerSetup planned_setup(const config::Config& config, const config::Server& server,
                          const ssh::LoginFacts& login, const std::vector<PlannedProcess>& processes,
                          const std::vector<CodeChanged>& changed);

// A fact in the record of a launch, such as "code"; "" if the server does not have it.
std::string find_fact(const ServerSetup& server, std::string_view name);

// The variables with the same value in all of these processes, except those that identify a process. Values
// that look secret are masked.
Env shared_variables(const std::vector<PlannedProcess>& processes);

// Stores the variables of the servers in the folder of the launch's first job, because the launch's record,
// which is kept longer, has no values. Both throw Error.
void write_variables(const jobs::Store& store, const Job& first, const std::vector<ServerSetup>& servers);
void read_variables(const jobs::Store& store, const Job& first, std::vector<ServerSetup>& servers);

}  // namespace remote::project
