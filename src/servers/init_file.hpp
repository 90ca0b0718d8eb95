#pragma once

#include <cstddef>
#include <string>

#include <remote/cancel.hpp>
#include <remote/job.hpp>

#include "ssh/connection.hpp"
#include "wire/init_file.hpp"

// The shared file through which the ranks of a launch find each other (torch's init_method="file://…"). It is
// the file `store` in the launch's own folder ".remote-init-ID", within a folder that all servers share. The
// last job of the launch to end removes it: src/agent/job/init_file.hpp.

namespace remote::servers {

// Creates the launch's folder within `folder` on the first server, and checks that it can be used.
// `make_all`: also creates `folder` if it is missing. Throws Error.
wire::InitFileReply make_init_file(ssh::Connection& connection, const std::string& folder,
                                   const JobId& launch, bool make_all, const Cancel& cancel);

// Checks the launch's folder on another server. Call it after the first server has answered. `maker` is the
// first server's name. Throws Error.
wire::InitFileReply see_init_file(ssh::Connection& connection, const std::string& folder, const JobId& launch,
                                  const std::string& maker, const Cancel& cancel);

// Removes the launch's folder. Call it if no job of the launch was started. Throws Error.
void drop_init_file(ssh::Connection& connection, const std::string& folder, const JobId& launch,
                    const Cancel& cancel);

// Adds a failure if torch does not accept the folder's path. Throws Error for a malformed reply.
wire::InitFileReply check_reply(wire::InitFileReply reply);

// The content of a job's file `init_file`: the launch's number of jobs, and its folder.
std::string init_file_text(std::size_t jobs, const std::string& folder);

// The URL for torch: "file:///mnt/common/.remote-init-ID/store".
std::string init_file_url(const std::string& folder);

}  // namespace remote::servers
