#include "agent/facts/programs.hpp"

#include <unistd.h>

#include "wire/text.hpp"

namespace remote::agent {
namespace {

// The text after the first `mark`; "" if the mark is missing.
std::string_view text_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == std::string_view::npos ? "" : text.substr(at + mark.size());
}

// The first word that starts with a digit.
std::string read_version(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  constexpr std::string_view allowed = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-";
  const std::size_t begin = text.find_first_of(digits);
  if (begin == std::string_view::npos) {
    return {};
  }
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_first_not_of(allowed)).substr(0, 200));
}

}  // namespace

bool has_program_outside(const Host& host, const wire::FactsRequest& request) {
  const std::string name = request.program.value_or("");
  if (name.empty()) {
    return false;
  }
  if (!request.environment.empty() && is_program(host.expand(request.environment) / "bin" / name)) {
    return true;
  }
  return name.find('/') == std::string::npos ? !host.find_program(name).empty() : is_program(name);
}

std::optional<wire::MpiFacts> read_mpi(const Activation& activation) {
  const std::string_view printed = activation.mpirun;
  wire::MpiFacts mpi;
  if (const std::string_view open = text_after(printed, "(Open MPI) "); !open.empty()) {
    mpi.version = read_version(open);
  } else {
    mpi.hydra = true;
    const std::string_view mpich = printed.starts_with("HYDRA") ? text_after(printed, "Version:") : "";
    const std::string_view intel = text_after(text_after(printed, "Intel(R) MPI Library"), "Version ");
    mpi.version = read_version(mpich.empty() ? intel : mpich);
  }
  if (mpi.version.empty()) {
    return std::nullopt;
  }
  mpi.has_daemon = activation.has_mpi_daemon;
  mpi.root = ::geteuid() == 0;
  return mpi;
}

}  // namespace remote::agent
