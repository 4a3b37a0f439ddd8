// What must be settled before anything else runs, so that a result is never lost to a broken standard stream.
#pragma once

namespace memwall {

// Opens those of the descriptors 0 to 2 that the caller closed: the next file that is opened would get the
// number, and a warning would land in it. Output to a closed standard output still fails, to a closed
// standard error is dropped. A pipe that nobody reads and a limit on the size of files become errors of
// write(2), not the end of the process.
void secure_standard_streams();

}  // namespace memwall
