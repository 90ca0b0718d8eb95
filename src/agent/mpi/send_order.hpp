#pragma once

#include <string>
#include <vector>

// mpirun's remote agents, in place of ssh: they bring the command line of its daemon to the job on another
// server. `words`: the host, as mpirun calls it, and the command line. The working directory is the job's
// folder. They exit with an error if the order is not for a daemon, or its host is not in the launch.

namespace remote::agent {

// Gives the order to the lifeline of the launch on this server, and returns when that has sent it. A lifeline
// that has died is restarted by the next query of the job, and finds the order. MPICH's mpirun assumes that
// the daemon has exited when its agent exits, so for that one this returns when the job on the host has
// ended.
int send_order_by_lifeline(const std::vector<std::string>& words);

// Runs receive_order() on the host by the ssh of this server, with the user's own keys and settings. The file
// `mpi_hosts` has a line HOST USER ADDRESS PORT COMMAND for each host. Returns the exit status of ssh.
int send_order_by_ssh(const std::vector<std::string>& words);

// Runs on the other server: gives the order, the daemon and its arguments, to the waiting job. For MPICH's
// daemon this returns when the job has ended, or when the ssh of the sender, which keeps stdin open, is gone.
int receive_order(std::vector<std::string> words);

}  // namespace remote::agent
