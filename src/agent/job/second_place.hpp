#pragma once

#include <string>
#include <string_view>

#include "agent/host/host.hpp"

// The fallback folder for the job's records, used if the job's folder cannot be written because the disk is
// full or read-only. It is remote-UID in /var/tmp, /tmp or /dev/shm, and accessible only to this user. A
// folder or link that another user has created under this name is not used, and neither are files of other
// users.

namespace remote::agent {

// Reads the part of the job's journal that is in this folder; "" if there is none.
std::string read_second_journal(const Host& host, const std::string& id);
// Appends whole lines to it. Returns false on failure.
bool append_to_second_journal(const Host& host, const std::string& id, std::string_view lines);
void remove_second_journal(const Host& host, const std::string& id);

}  // namespace remote::agent
