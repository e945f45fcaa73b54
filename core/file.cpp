#include "core/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace stitchwork {

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw Error(path, 0, 0, "is a folder, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(path, 0, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void write_file(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::error_code error;
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out) {
      const int reason = errno;
      fs::remove(temporary, error);
      throw Error(path, 0, 0, fmt::format("cannot be written: {}", std::strerror(reason)),
                  "check that the folder exists and may be written to");
    }
  }
  fs::rename(temporary, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw Error(path, 0, 0, fmt::format("cannot be written: {}", error.message()));
  }
}

}  // namespace stitchwork
