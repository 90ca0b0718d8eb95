#pragma once

#include <cstddef>
#include <string>

#include <remote/cancel.hpp>
#include <remote/job.hpp>

#include "ssh/connection.hpp"
#include "wire/init_file.hpp"

// The shared file by which the ranks of a launch find each other (torch's init_method="file://…"): a file
// `store` in a folder ".remote-init-ID" of the launch's own, within a folder that all servers have in common.
// The last job of the launch that ends removes it: src/agent/job/init_file.hpp.

namespace remote::servers {

// Creates the launch's folder within `folder`, on the first server, and checks that it can be used.
// `make_all`: creates `folder`, too, if it is missing. Throws Error.
wire::InitFileReply make_init_file(ssh::Connection& connection, const std::string& folder,
                                   const JobId& launch, bool make_all, const Cancel& cancel);

// Checks the launch's folder on another server, after the first one has answered. `maker`: the first server's
// name. Throws Error.
wire::InitFileReply see_init_file(ssh::Connection& connection, const std::string& folder, const JobId& launch,
                                  const std::string& maker, const Cancel& cancel);

// Removes the launch's folder if no job of the launch was started. Throws Error.
void drop_init_file(ssh::Connection& connection, const std::string& folder, const JobId& launch,
                    const Cancel& cancel);

// Adds the failure of a folder that torch does not accept. Throws Error for a malformed reply.
wire::InitFileReply check_reply(wire::InitFileReply reply);

// The content of a job's file `init_file`: the number of the launch's jobs, and the launch's folder.
std::string init_file_text(std::size_t jobs, const std::string& folder);

// The URL for torch: "file:///mnt/common/.remote-init-ID/store".
std::string init_file_url(const std::string& folder);

}  // namespace remote::servers
