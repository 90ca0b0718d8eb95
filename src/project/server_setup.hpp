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

// The part of a server's setup that needs no look at it: the code that it was sent, and the variables of
// these processes. `changed`: what was told of the code.
ServerSetup planned_setup(const config::Config& config, const config::Server& server,
                          const ssh::LoginFacts& login, const std::vector<PlannedProcess>& processes,
                          const std::vector<CodeChanged>& changed);

// A fact of the record of a launch, such as "code"; "" if the server has none of this name.
std::string find_fact(const ServerSetup& server, std::string_view name);

// The variables that all of these processes have with the same value, and that do not say who one of them is.
// What looks secret is masked.
Env shared_variables(const std::vector<PlannedProcess>& processes);

// The variables of the servers, in a file of the folder of the launch's first job: a launch's record, which
// stays, has no values. Both throw Error.
void write_variables(const jobs::Store& store, const Job& first, const std::vector<ServerSetup>& servers);
void read_variables(const jobs::Store& store, const Job& first, std::vector<ServerSetup>& servers);

}  // namespace remote::project
