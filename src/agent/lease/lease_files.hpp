#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "rules/leases.hpp"

// The files of leases (docs/sharing.md). Each belongs to a user, in a folder where every user can create
// files and none can remove another's. A file counts while an open file description holds a write lock on its
// first byte (F_OFD_SETLK): all processes that have inherited the descriptor hold that lock, and only the
// file's owner can open it for writing.

namespace remote::agent {

// The server does not support leases, or not this one. what() is the reason, for the user.
struct LeaseRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Others have leased the resources, or are waiting for them.
struct LeasedByOthers : LeaseRefused {
  using LeaseRefused::LeaseRefused;
};

constexpr std::string_view lease_prefix = ".remote-lease.";

// The folder shared by all users of this machine, or the one in REMOTE_LEASES. Throws LeaseRefused.
Path find_leases_folder(const Host& host);
// Whether any folder of leases contains a lease file, in use or not.
bool has_lease_files(const Host& host);

// ".remote-lease.UID.RANDOM"
std::string make_lease_name();
bool is_lease_name(std::string_view name);

// Locks the file, and only then lets other users read it, so that none of them can have locked it before.
// Throws LeaseRefused.
void publish_lease(int fd);

// Closes a lease, and removes its file unless another process of this user still holds it. Does nothing if
// the descriptor is not that of a lease.
void close_lease(int fd);

// Returns all leases and waiters, sorted by arrival. Files of other users are untrusted: links are not
// followed, and opening a FIFO does not block. Removes files of this user that have been unlocked for a
// minute.
std::vector<rules::LeaseEntry> read_lease_entries(const Path& folder);

}  // namespace remote::agent
