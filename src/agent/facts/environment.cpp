#include "agent/facts/environment.hpp"

#include <algorithm>

#include "agent/facts/activation.hpp"
#include "agent/facts/programs.hpp"
#include "agent/facts/python.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// Returns the value that a variable has at login, for variables that can be lists; "" if `value`, which is
// the variable after the activation, does not end with it.
std::string find_login_value(const Host& host, const wire::FactsRequest& request, const char* name,
                             const std::string& value) {
  const std::string before = host.variable(name);
  const bool is_given = std::ranges::count(request.variables, name, &wire::Variable::name) > 0;
  const bool is_kept = !before.empty() && (":" + value).ends_with(":" + before);
  return is_kept && !is_given ? wire::to_line(before, 4096) : "";
}

}  // namespace

std::optional<Activation> read_environment(const Host& host, const wire::FactsRequest& request,
                                           wire::FactsReply& reply) {
  wire::FactsRequest rest = request;
  if (has_program_outside(host, request)) {
    rest.program.reset();
  }
  if (!rest.python && !rest.program && !rest.mpi) {
    return std::nullopt;
  }
  const Activation activation = activate(host, rest);
  reply.facts.prologue_failure = activation.prologue_failure;
  if (rest.python) {
    read_python(host, rest, activation, reply.facts);
    reply.facts.python_path = find_login_value(host, request, "PYTHONPATH", activation.python_path);
    reply.facts.python_home = find_login_value(host, request, "PYTHONHOME", activation.python_home);
  }
  if (rest.program && !activation.has_program) {
    reply.missing = wire::to_line(*rest.program);
  }
  if (rest.mpi) {
    reply.mpi = read_mpi(activation);
  }
  return activation;
}

}  // namespace remote::agent
