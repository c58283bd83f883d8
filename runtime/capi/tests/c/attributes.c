/* Tests the attributes of communicators and datatypes: callbacks, sentinels, predefined attributes, and
   what MPI_Finalize deletes. */
#include "check.h"

static int copies, deletes, refuse;
static char extra;

static int copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    CHECK(comm == MPI_COMM_SELF && keyval > 0 && state == &extra);
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = in != NULL;
    return refuse ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)value;
    CHECK(comm != MPI_COMM_NULL && keyval > 0 && state == &extra);
    deletes++;
    return refuse ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static MPI_Comm copied_to = MPI_COMM_NULL;

static int refuse_copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)keyval, (void)state, (void)in, (void)out;
    CHECK(comm == MPI_COMM_SELF);
    *flag = 0;
    return MPI_ERR_NAME;
}

static int take_back(MPI_Comm comm, int keyval, void *value, void *state)
{
    int size = -1;
    (void)keyval, (void)state;
    CHECK(value == &extra);
    OK(MPI_Comm_size(comm, &size));
    copied_to = comm;
    return MPI_SUCCESS;
}

/* Checks that, if copying one of several attributes fails, the attributes that the duplicate already has
   are deleted. */
static void half_copied(void)
{
    int first, second, size;
    MPI_Comm dup = MPI_COMM_WORLD;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, take_back, &first, NULL));
    OK(MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &second, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, first, &extra));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, second, &extra));
    RAISES(MPI_ERR_NAME, MPI_Comm_dup(MPI_COMM_SELF, &dup));
    CHECK(dup == MPI_COMM_NULL && copied_to != MPI_COMM_NULL && copied_to != MPI_COMM_SELF);
    RAISES(MPI_ERR_COMM, MPI_Comm_size(copied_to, &size));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, second));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, first));
    CHECK(copied_to == MPI_COMM_SELF);
    OK(MPI_Comm_free_keyval(&first));
    OK(MPI_Comm_free_keyval(&second));
}

static int type_copies, type_deletes, type_refuse;
static MPI_Datatype type_copied_to;

static int copy_type(MPI_Datatype type, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)type, (void)keyval, (void)state;
    *(void **)out = in;
    *flag = 1;
    return ++type_copies == 2 && type_refuse ? MPI_ERR_NAME : MPI_SUCCESS;
}

static int delete_type(MPI_Datatype type, int keyval, void *value, void *state)
{
    (void)keyval, (void)value, (void)state;
    type_copied_to = type;
    type_deletes++;
    return type_refuse == 2 ? MPI_ERR_NAME : MPI_SUCCESS;
}

/* Makes the same checks for datatypes. If a delete function fails, the datatype is not freed. */
static void of_types(void)
{
    int keys[2], size, flag;
    void *value;
    MPI_Datatype type, dup = MPI_INT, kept;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Type_create_keyval(copy_type, delete_type, &keys[i], NULL));
        OK(MPI_Type_set_attr(type, keys[i], &keys[i]));
    }
    type_refuse = 1;
    RAISES(MPI_ERR_NAME, MPI_Type_dup(type, &dup));
    CHECK(dup == MPI_DATATYPE_NULL && type_copies == 2 && type_deletes == 1 && type_copied_to != type);
    RAISES(MPI_ERR_TYPE, MPI_Type_size(type_copied_to, &size));
    type_refuse = type_copies = 0;
    OK(MPI_Type_dup(type, &dup));
    OK(MPI_Type_get_attr(dup, keys[1], &value, &flag));
    CHECK(type_copies == 2 && flag && value == &keys[1]);
    type_refuse = 2, kept = dup;
    RAISES(MPI_ERR_NAME, MPI_Type_free(&dup));
    RAISES(MPI_ERR_NAME, MPI_Type_delete_attr(dup, keys[0]));
    RAISES(MPI_ERR_NAME, MPI_Type_set_attr(dup, keys[0], NULL));
    OK(MPI_Type_get_attr(dup, keys[0], &value, &flag));
    CHECK(dup == kept && flag && value == &keys[0]);
    type_refuse = type_deletes = 0;
    OK(MPI_Type_free(&dup));
    CHECK(dup == MPI_DATATYPE_NULL && type_deletes == 2);
    OK(MPI_Type_free(&type));
    for (int i = 0; i < 2; i++) OK(MPI_Type_free_keyval(&keys[i]));
}

static int order[4], ended;

static int at_end(MPI_Comm comm, int keyval, void *value, void *state)
{
    int flag = 0;
    (void)keyval;
    (void)state;
    CHECK(comm == MPI_COMM_SELF);
    OK(MPI_Finalized(&flag));
    CHECK(!flag);
    /* While attributes are deleted in MPI_Finalize, ranks can still exchange messages. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    order[ended++] = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static int predefined(MPI_Comm comm, int keyval)
{
    int *value = NULL, flag = -1;
    OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
    CHECK(flag == 1);
    return *value;
}

int main(int argc, char **argv)
{
    int size, flag, key, same, nothing, freed, class, keys[3];
    void *value;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));

    CHECK(predefined(MPI_COMM_WORLD, MPI_TAG_UB) >= 32767);
    CHECK(predefined(MPI_COMM_WORLD, MPI_HOST) == MPI_PROC_NULL);
    CHECK(predefined(MPI_COMM_WORLD, MPI_IO) == MPI_ANY_SOURCE);
    CHECK(predefined(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL) == 1);
    CHECK(predefined(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE) >= size);
    int last = predefined(MPI_COMM_WORLD, MPI_LASTUSEDCODE);
    CHECK(last >= MPI_ERR_LASTCODE);
    OK(MPI_Add_error_class(&class));
    CHECK(predefined(MPI_COMM_WORLD, MPI_LASTUSEDCODE) == class && class > last);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(flag == (getenv("TYPEPACK_RANK") != NULL) && (!flag || *(int *)value == 0));
    int *tag = NULL;
    OK(MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &tag, &flag));
    CHECK(flag && *tag >= 32767);
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &flag));
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB));
    key = MPI_TAG_UB;
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&key));

    /* The first attribute is copied by the user's function, the second is copied unchanged, and the third
       is not copied. */
    OK(MPI_Comm_create_keyval(copy, delete, &key, &extra));
    OK(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &same, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &nothing, NULL));
    char here[2];
    OK(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
    CHECK(flag == 0);
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, here));
    OK(MPI_Attr_put(MPI_COMM_SELF, same, here));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, nothing, here));
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    CHECK(copies == 1 && deletes == 0);
    OK(MPI_Comm_get_attr(dup, key, &value, &flag));
    CHECK(flag && value == here + 1);
    OK(MPI_Comm_get_attr(dup, same, &value, &flag));
    CHECK(flag && value == here);
    OK(MPI_Comm_get_attr(dup, nothing, &value, &flag));
    CHECK(!flag);
    /* A split copies no attributes. */
    MPI_Comm part;
    OK(MPI_Comm_split(MPI_COMM_SELF, 0, 0, &part));
    OK(MPI_Comm_get_attr(part, same, &value, &flag));
    CHECK(!flag && copies == 1);
    OK(MPI_Comm_free(&part));
    /* A freed key stays alive as long as an object has a value of the key. */
    freed = key;
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    OK(MPI_Comm_get_attr(dup, freed, &value, &flag));
    CHECK(flag);
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&key));
    key = freed;
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&key));
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, freed, &extra));
    /* If a delete function fails, the communicator is not freed. When the function no longer fails, it is
       freed. */
    refuse = 1;
    MPI_Comm again = dup;
    RAISES(MPI_ERR_INTERN, MPI_Comm_free(&again));
    CHECK(again == dup && deletes == 1);
    RAISES(MPI_ERR_INTERN, MPI_Comm_dup(MPI_COMM_SELF, &again));
    CHECK(again == MPI_COMM_NULL);
    refuse = 0;
    OK(MPI_Comm_free(&dup));
    CHECK(deletes == 2);
    /* When the last value of a freed key is deleted, the key no longer exists. */
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, freed));
    CHECK(deletes == 3);
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_SELF, freed, &value, &flag));
    deletes = 2;

    /* Setting an attribute again first deletes the old value. */
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete, &key, &extra));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, here));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL));
    CHECK(deletes == 3);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(flag && value == NULL);
    OK(MPI_Attr_delete(MPI_COMM_WORLD, key));
    CHECK(deletes == 4);
    OK(MPI_Attr_delete(MPI_COMM_WORLD, key));
    CHECK(deletes == 4);
    OK(MPI_Keyval_free(&key));
    /* Keys of datatypes, and numbers that are not keys, are errors for communicators. */
    OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL));
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL));
    RAISES(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &value, &flag));
    RAISES(MPI_ERR_COMM, MPI_Comm_get_attr(MPI_COMM_NULL, same, &value, &flag));
    RAISES(MPI_ERR_ARG, MPI_Comm_get_attr(MPI_COMM_WORLD, same, NULL, &flag));

    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, same));
    half_copied();
    of_types();

    /* MPI_Finalize first deletes the attributes of MPI_COMM_SELF, beginning with the one that was set
       last. */
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, nothing));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &keys[i], NULL));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], (void *)(intptr_t)(i + 1)));
    }
    /* If an attribute is set again, it becomes the one that was set last. */
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keys[1], (void *)(intptr_t)4));
    CHECK(ended == 1 && order[0] == 2);
    OK(MPI_Finalize());
    CHECK(ended == 4 && order[1] == 4 && order[2] == 3 && order[3] == 1);
    return 0;
}
